// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Sink receives OTLP over gRPC on :4317, and serves what a backend would show as JSON on :8080.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/kube/internal/page"
)

// pageOf returns what a backend would show.
func pageOf(s *otlpfile.Sink) (p page.Page) {
	var err error
	if p.Resources, err = s.Resources(); err != nil {
		p.Error = err.Error()
	}
	return p
}

func main() {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", ":4317")
	if err != nil {
		log.Fatal(err)
	}
	s := otlpfile.Serve(l)
	defer s.Close()
	page := &http.Server{
		Addr:              ":8080",
		ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(pageOf(s)) // the client may have disconnected
		}),
	}
	log.Fatal(page.ListenAndServe())
}
