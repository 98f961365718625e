package chert

import "github.com/chert-http/chert/stats"

// RunningRequests implements stats.Source.
func (s *Server) RunningRequests(max int) []stats.Request { return nil }

// OpenConnections implements stats.Source.
func (s *Server) OpenConnections(max int) []stats.Connection { return nil }
