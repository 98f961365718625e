package direct_test

import (
	"fmt"
	"net/http/httptest"

	"github.com/chert-http/chert/direct"
)

func ExampleHandlerFunc() {
	h := direct.HandlerFunc(func(x *direct.Exchange) {
		x.SetHeader("Cache-Control", "no-store")
		x.JSON(map[string]string{"hello": string(x.QueryValue("name"))})
	})
	w := httptest.NewRecorder() // any server of net/http; chert calls it without a Request
	h.ServeHTTP(w, httptest.NewRequest("GET", "/?name=flint", nil))
	fmt.Print(w.Code, " ", w.Body)
	// Output: 200 {"hello":"flint"}
}
