// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // what exporters compress with

	"github.com/nixl-otel/nixl-otel/test/kube/internal/series"
)

// receiver is an OTLP server that stores metrics.
type receiver struct {
	pmetricotlp.UnimplementedGRPCServer
	*series.Store
}

func (r *receiver) Export(_ context.Context, request pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	r.Add(request.Metrics())
	return pmetricotlp.NewExportResponse(), nil
}

func sink() error {
	store := series.NewStore()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", ":4317")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	pmetricotlp.RegisterGRPCServer(server, &receiver{Store: store})
	failed := make(chan error, 2)
	go func() { failed <- server.Serve(l) }()
	page := &http.Server{
		Addr:              ":8080",
		ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(store.Contents()) // the client may have disconnected
		}),
	}
	go func() { failed <- page.ListenAndServe() }()
	return <-failed
}
