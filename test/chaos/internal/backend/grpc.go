// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"net"
	"testing"

	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // what exporters compress with
	"google.golang.org/grpc/status"
)

// NewGRPC starts a backend for OTLP over gRPC.
func NewGRPC(tb testing.TB) *Backend {
	tb.Helper()
	return newBackend(tb, func(b *Backend) func(net.Listener) func() {
		return func(l net.Listener) func() {
			server := grpc.NewServer()
			pmetricotlp.RegisterGRPCServer(server, &service{backend: b})
			go func() { _ = server.Serve(l) }() // until it is stopped
			return server.Stop
		}
	})
}

type service struct {
	pmetricotlp.UnimplementedGRPCServer

	backend *Backend
}

// Export accepts or rejects a request. RESOURCE_EXHAUSTED has no retry delay, so exporters drop the
// request.
func (s *service) Export(ctx context.Context, r pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	response := pmetricotlp.NewExportResponse()
	switch s.backend.admit(ctx) {
	case Throttles:
		return response, status.Error(codes.ResourceExhausted, "too much")
	case Fails:
		return response, status.Error(codes.Unavailable, "down")
	case HangsUp:
		return response, status.Error(codes.Aborted, "broken off")
	default:
		s.backend.accept(r.Metrics())
		return response, nil
	}
}
