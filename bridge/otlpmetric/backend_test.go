// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package otlpmetric_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// backend is an OTLP backend that stores the requests it receives.
type backend struct {
	collector.UnimplementedMetricsServiceServer
	address string // host:port

	mu      sync.Mutex
	got     []*metrics.ResourceMetrics
	headers metadata.MD
}

func (b *backend) Export(
	ctx context.Context, request *collector.ExportMetricsServiceRequest,
) (*collector.ExportMetricsServiceResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, request.GetResourceMetrics()...)
	b.headers, _ = metadata.FromIncomingContext(ctx)
	return &collector.ExportMetricsServiceResponse{}, nil
}

// ServeHTTP implements OTLP over HTTP.
func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collector.ExportMetricsServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	if err != nil || r.URL.Path != "/v1/metrics" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "not an OTLP request", http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, request.GetResourceMetrics()...)
	b.headers = metadata.MD{}
	for name, values := range r.Header {
		b.headers.Append(name, values...)
	}
}

// newest returns the metrics of the newest export by name.
func (b *backend) newest(t *testing.T) map[string]*metrics.Metric {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.got) == 0 {
		t.Fatal("nothing was exported")
	}
	all := make(map[string]*metrics.Metric)
	for _, scope := range b.got[len(b.got)-1].GetScopeMetrics() {
		for _, m := range scope.GetMetrics() {
			all[m.GetName()] = m
		}
	}
	return all
}

// resource returns the resource of the newest export.
func (b *backend) resource(t *testing.T) map[string]string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.got) == 0 {
		t.Fatal("nothing was exported")
	}
	all := make(map[string]string)
	for _, kv := range b.got[len(b.got)-1].GetResource().GetAttributes() {
		all[kv.GetKey()] = kv.GetValue().GetStringValue()
	}
	return all
}

func startBackend(t *testing.T, opts ...grpc.ServerOption) *backend {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{address: listener.Addr().String()}
	server := grpc.NewServer(opts...)
	collector.RegisterMetricsServiceServer(server, b)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return b
}

func startHTTPBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.address = server.Listener.Addr().String()
	return b
}

// files holds the paths of a self-signed certificate for 127.0.0.1 and its key.
type files struct {
	cert, key string
	server    grpc.ServerOption
}

func certificate(t *testing.T) files {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := files{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	write(t, f.cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, f.key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})))
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		t.Fatal(err)
	}
	f.server = grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}))
	return f
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
