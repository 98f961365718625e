module github.com/chert-http/chert/lab

go 1.26.0

require github.com/chert-http/chert v0.0.0-00010101000000-000000000000

require golang.org/x/sys v0.49.0 // indirect

replace github.com/chert-http/chert => ../
