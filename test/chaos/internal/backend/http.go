// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// NewHTTP starts a backend for OTLP over HTTP.
func NewHTTP(tb testing.TB) *Backend {
	tb.Helper()
	return newBackend(tb, func(b *Backend) func(net.Listener) func() {
		return func(l net.Listener) func() {
			server := &http.Server{Handler: http.HandlerFunc(b.serve), ReadHeaderTimeout: time.Minute}
			go func() { _ = server.Serve(l) }() // until it is closed
			return func() { _ = server.Close() }
		}
	})
}

func (b *Backend) serve(w http.ResponseWriter, r *http.Request) {
	switch b.admit(r.Context()) {
	case Throttles:
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
		w.WriteHeader(http.StatusTooManyRequests)
	case Fails:
		w.WriteHeader(http.StatusServiceUnavailable)
	case HangsUp:
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte("half an ans"))
		panic(http.ErrAbortHandler)
	default:
		b.export(w, r)
	}
}

func (b *Backend) export(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	var err error
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, err = gzip.NewReader(body)
	}
	var text []byte
	if err == nil {
		text, err = io.ReadAll(body)
	}
	request := pmetricotlp.NewExportRequest()
	if err == nil {
		err = request.UnmarshalProto(text)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.accept(request.Metrics())
	response, err := pmetricotlp.NewExportResponse().MarshalProto()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(response) // the Collector may have closed the connection
}
