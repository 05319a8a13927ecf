package main

// Run runs.
func Run() {}

func (s *Server) Stop() {}

func private() {}

type Server struct{}
