package server

import (
	"encoding/json"
	"net/http"
)

// healthz says that the process answers.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	s.writeStatus(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readyz says whether to send requests here: 200 or 503, and why.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	if s.drain.Err() != nil {
		s.writeStatus(w, http.StatusServiceUnavailable, map[string]string{"reason": "shutting down"})
		return
	}
	if s.ready == nil {
		s.writeStatus(w, http.StatusOK, map[string]string{"status": "ready"})
		return
	}
	ok, body := s.ready()
	status := http.StatusOK
	if !ok {
		status = http.StatusServiceUnavailable
	}
	s.writeStatus(w, status, body)
}

func (s *Server) writeStatus(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		s.log.Error("encoding a health report", "cause", err)
		status, b = http.StatusInternalServerError, []byte(`{}`)
	}
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Cache-Control"] = noStore
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the client may have gone
}
