package rpc

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		name string
		tell func() ([]byte, error)
		want string
		code codes.Code
	}{
		{"told", func() ([]byte, error) { return []byte(`{"id":"a"}`), nil }, `{"id":"a"}`, codes.OK},
		{"nothing to tell", nil, "", codes.Unimplemented},
		{"an error", func() ([]byte, error) { return nil, errors.New("no") }, "", codes.Internal},
		{"too much", func() ([]byte, error) { return make([]byte, maxStatus), nil }, "", codes.ResourceExhausted},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, err := NewClient(serve(t, nil, Service{Status: c.tell}), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			got, err := client.Status(t.Context())
			if string(got) != c.want || status.Code(err) != c.code {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
