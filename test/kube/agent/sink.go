// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // what exporters compress with

	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
	"github.com/nixl-otel/nixl-otel/test/kube/internal/page"
)

// receiver is an OTLP server that adds up metrics.
type receiver struct {
	pmetricotlp.UnimplementedGRPCServer

	mu   sync.Mutex
	sums *otlpfile.Sums
}

func (r *receiver) Export(_ context.Context, request pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sums.Add(request.Metrics())
	return pmetricotlp.NewExportResponse(), nil
}

// page returns what a backend would show.
func (r *receiver) page() (p page.Page) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if p.Resources, err = r.sums.Resources(); err != nil {
		p.Error = err.Error()
	}
	return p
}

func sink() error {
	r := &receiver{sums: otlpfile.NewSumsAnyOrder()} // the exporter's queue has several consumers
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", ":4317")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	pmetricotlp.RegisterGRPCServer(server, r)
	failed := make(chan error, 2)
	go func() { failed <- server.Serve(l) }()
	page := &http.Server{
		Addr:              ":8080",
		ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(r.page()) // the client may have disconnected
		}),
	}
	go func() { failed <- page.ListenAndServe() }()
	return <-failed
}
