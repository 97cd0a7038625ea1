// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package otlpmetric_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/otlpmetric"
)

// clearEnv clears all of OpenTelemetry's variables.
func clearEnv(t *testing.T) {
	t.Helper()
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
}

// withDeadline returns a context with a deadline that a test never reaches.
func withDeadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func newProvider(t *testing.T, opts ...otlpmetric.Option) *otlpmetric.Provider {
	t.Helper()
	provider, err := otlpmetric.New(t.Context(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return provider
}

func shutdown(t *testing.T, provider *otlpmetric.Provider) {
	t.Helper()
	if err := provider.Shutdown(withDeadline(t)); err != nil {
		t.Fatal(err)
	}
}

// export creates a provider, records a count, and shuts down the provider.
func export(t *testing.T, opts ...otlpmetric.Option) {
	t.Helper()
	provider := newProvider(t, opts...)
	counter, err := provider.Meter("test").Int64Counter("things")
	if err != nil {
		t.Fatal(err)
	}
	counter.Add(t.Context(), 1)
	shutdown(t, provider)
}

func TestEnvironmentSelectsTheProtocol(t *testing.T) {
	for name, c := range map[string]struct {
		start func(t *testing.T) *backend
		env   map[string]string
	}{
		"default":       {func(t *testing.T) *backend { return startBackend(t) }, nil},
		"grpc":          {func(t *testing.T) *backend { return startBackend(t) }, map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}},
		"http/protobuf": {startHTTPBackend, map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}},
		"for metrics": {startHTTPBackend, map[string]string{
			"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			clearEnv(t)
			b := c.start(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+b.address)
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s%2Cecret,tenant=t")
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			export(t)
			if b.newest(t)["things"] == nil || len(b.got) != 1 {
				t.Errorf("the backend has %v", b.got)
			}
			if got := b.headers.Get("api-key"); len(got) != 1 || got[0] != "s,ecret" {
				t.Errorf("header %q", got)
			}
		})
	}
}

func TestInvalidEnvironmentIsRejected(t *testing.T) {
	for value, c := range map[string]struct{ name, want string }{
		"http/json":      {"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json: must be grpc or http/protobuf"},
		"localhost:4317": {"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4317: has no scheme; set it to http://localhost:4317,"},
		"collector":      {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=collector: has no scheme"},
	} {
		clearEnv(t)
		t.Setenv(c.name, value)
		if _, err := otlpmetric.New(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: error %v", c.name, value, err)
		}
	}
}

// Without an endpoint, both protocols export to this host without TLS. No Collector is
// running, so the error contains the endpoint.
func TestDefaultEndpointIsLocalWithoutTLS(t *testing.T) {
	for protocol, want := range map[string]string{"grpc": ":4317", "http/protobuf": "http://localhost:4318/v1/metrics"} {
		t.Run(protocol, func(t *testing.T) {
			clearEnv(t)
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
			provider := newProvider(t)
			if _, err := provider.Meter("test").Int64ObservableCounter("things", observeBy(func() {})); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := provider.Shutdown(ctx)
			if err == nil {
				t.Skip("a Collector is listening on the default port")
			}
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "tls") {
				t.Errorf("error %v doesn't contain %s", err, want)
			}
		})
	}
}

// The intervals aren't shorter, because the SDK's reader has a data race if it collects
// while it is being created.
func TestIntervalIsFromTheOptionOrElseFromTheEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		environment string
		opts        []otlpmetric.Option
	}{
		"environment": {"50", nil},
		"program":     {"3600000", []otlpmetric.Option{otlpmetric.WithInterval(50 * time.Millisecond)}},
	} {
		t.Run(name, func(t *testing.T) {
			clearEnv(t)
			b := startBackend(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+b.address)
			t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", c.environment)
			provider := newProvider(t, c.opts...)
			collected := make(chan struct{}, 1<<10)
			if _, err := provider.Meter("test").Int64ObservableCounter("things",
				observeBy(func() { collected <- struct{}{} })); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				<-collected
			}
			shutdown(t, provider)
		})
	}
}

// observeBy returns an option that calls f at each collection.
func observeBy(f func()) metric.Int64ObservableCounterOption {
	return metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
		f()
		o.Observe(1)
		return nil
	})
}

func TestEnvironmentConfiguresTLS(t *testing.T) {
	clearEnv(t)
	f := certificate(t)
	b := startBackend(t, f.server)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://"+b.address)
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", f.cert)
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_CLIENT_CERTIFICATE", f.cert)
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY", f.key)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	export(t)
	if b.newest(t)["things"] == nil {
		t.Errorf("the backend has %v", b.got)
	}
}

func TestEnvironmentTakesPrecedenceInTheResource(t *testing.T) {
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	options := []otlpmetric.Option{
		otlpmetric.WithServiceName("kv-cache"), otlpmetric.WithAttributes(attribute.String("nixl.agent.name", "a")),
	}
	for name, c := range map[string]struct {
		env  map[string]string
		opts []otlpmetric.Option
		want map[string]string
	}{
		"detected": {nil, nil, map[string]string{
			"service.name": "unknown_service:otlpmetric.test", "telemetry.sdk.language": "go",
			"host.name": hostname, "process.executable.name": "otlpmetric.test", "process.runtime.name": "go",
		}},
		"options": {nil, options, map[string]string{"service.name": "kv-cache", "nixl.agent.name": "a"}},
		"environment": {map[string]string{
			"OTEL_SERVICE_NAME": "mine", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test, nixl.agent.name=b%20c",
		}, options, map[string]string{"service.name": "mine", "nixl.agent.name": "b c", "deployment.environment.name": "test"}},
	} {
		t.Run(name, func(t *testing.T) {
			clearEnv(t)
			b := startBackend(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+b.address)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			export(t, c.opts...)
			got := b.resource(t)
			for k, v := range c.want {
				if got[k] != v {
					t.Errorf("%s is %q, want %q", k, got[k], v)
				}
			}
			for _, k := range []string{"process.command_args", "process.owner"} {
				if v, ok := got[k]; ok {
					t.Errorf("%s is %q, want none", k, v)
				}
			}
			if got["service.instance.id"] == "" {
				t.Error("no service.instance.id")
			}
		})
	}
}

func TestWithExporterReplacesTheExporterOfTheEnvironment(t *testing.T) {
	clearEnv(t)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "ignored")
	e := &exporter{}
	export(t, otlpmetric.WithExporter(e), otlpmetric.WithProviderOptions(sdkmetric.WithCardinalityLimit(10)))
	if e.exports != 1 || e.shutdowns != 1 {
		t.Errorf("%d exports, %d shutdowns", e.exports, e.shutdowns)
	}
}

func TestUnreachableBackendIsAnErrorOfShutdown(t *testing.T) {
	clearEnv(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	provider := newProvider(t)
	if _, err := provider.Meter("test").Int64ObservableCounter("things", observeBy(func() {})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := provider.Shutdown(ctx)
	if err == nil {
		t.Fatal("no error")
	}
	if again := provider.Shutdown(t.Context()); again == nil || again.Error() != err.Error() {
		t.Errorf("second Shutdown: %v", again)
	}
}
