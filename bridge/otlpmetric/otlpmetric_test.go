package otlpmetric_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/bridge/otlpmetric"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// clearEnv has the environment say nothing, whatever it says here.
func clearEnv(t *testing.T) {
	t.Helper()
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
}

// ship makes a provider, has it count something, and shuts it down.
func ship(t *testing.T, opts ...otlpmetric.Option) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	provider, err := otlpmetric.New(ctx, opts...)
	if err != nil {
		t.Fatal(err)
	}
	counter, err := provider.Meter("test").Int64Counter("things")
	if err != nil {
		t.Fatal(err)
	}
	counter.Add(ctx, 1)
	if err := provider.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
}

// Shutdown ships what no interval has shipped yet.
func TestShutdownFlushes(t *testing.T) {
	clearEnv(t)
	b := startBackend(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+b.address)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s%2Cecret,tenant=t")
	ship(t)
	if len(b.got) != 1 || b.got[0].GetScopeMetrics()[0].GetMetrics()[0].GetName() != "things" {
		t.Errorf("the backend has %v", b.got)
	}
	if got := b.headers.Get("api-key"); len(got) != 1 || got[0] != "s,ecret" {
		t.Errorf("header %q", got)
	}
}

// The interval of the environment is the reader's, unless the program gives it
// one.
func TestInterval(t *testing.T) {
	for name, c := range map[string]struct {
		environment string
		opts        []otlpmetric.Option
	}{
		"environment": {"1", nil},
		"program":     {"3600000", []otlpmetric.Option{otlpmetric.WithReaderOptions(sdkmetric.WithInterval(time.Millisecond))}},
	} {
		t.Run(name, func(t *testing.T) { testInterval(t, c.environment, c.opts) })
	}
}

func testInterval(t *testing.T, environment string, opts []otlpmetric.Option) {
	t.Helper()
	clearEnv(t)
	b := startBackend(t)
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://"+b.address+"/")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "nonsense that isn't looked at")
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", environment)
	collected := make(chan struct{}, 1<<10)
	provider, err := otlpmetric.New(t.Context(), append(opts, otlpmetric.WithProducers(ringkernel.NewRuntime().NewProducer()))...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.Meter("test").Int64ObservableCounter("things",
		observeBy(func() { collected <- struct{}{} })); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-collected
	}
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestTLS(t *testing.T) {
	clearEnv(t)
	f := certificate(t)
	b := startBackend(t, f.server)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://"+b.address)
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", f.cert)
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_CLIENT_CERTIFICATE", f.cert)
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY", f.key)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	ship(t)
	if len(b.got) != 1 {
		t.Errorf("the backend has %v", b.got)
	}
}

// The resource is detected, and the environment has the last word.
func TestResource(t *testing.T) {
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  map[string]string
		opts []otlpmetric.Option
		want map[string]string
	}{
		"nothing said": {nil, nil, map[string]string{
			"service.name": "unknown_service:otlpmetric.test", "telemetry.sdk.language": "go",
			"host.name": hostname, "process.executable.name": "otlpmetric.test", "process.runtime.name": "go",
		}},
		"by options": {nil, []otlpmetric.Option{
			otlpmetric.WithServiceName("kv-cache"), otlpmetric.WithAttributes(attribute.String("nixl.agent.name", "a")),
		}, map[string]string{"service.name": "kv-cache", "nixl.agent.name": "a"}},
		"by the environment": {map[string]string{
			"OTEL_SERVICE_NAME": "mine", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test, nixl.agent.name=b%20c",
		}, []otlpmetric.Option{
			otlpmetric.WithServiceName("kv-cache"), otlpmetric.WithAttributes(attribute.String("nixl.agent.name", "a")),
		}, map[string]string{"service.name": "mine", "nixl.agent.name": "b c", "deployment.environment.name": "test"}},
	} {
		t.Run(name, func(t *testing.T) {
			clearEnv(t)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			b := startBackend(t)
			ship(t, append(c.opts, otlpmetric.WithExporterOptions(
				otlpmetricgrpc.WithEndpoint(b.address), otlpmetricgrpc.WithInsecure()))...)
			got := b.resource(t)
			for k, v := range c.want {
				if got[k] != v {
					t.Errorf("%s is %q, want %q", k, got[k], v)
				}
			}
			for _, k := range []string{"process.command_args", "process.owner"} {
				if v, ok := got[k]; ok {
					t.Errorf("%s is told: %q", k, v)
				}
			}
			if got["service.instance.id"] == "" {
				t.Error("no service.instance.id")
			}
		})
	}
}

// A backend that isn't there is an error of Shutdown, within its deadline.
func TestBackendIsAway(t *testing.T) {
	clearEnv(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	provider, err := otlpmetric.New(t.Context(), otlpmetric.WithProviderOptions(sdkmetric.WithCardinalityLimit(10)))
	if err != nil {
		t.Fatal(err)
	}
	counter, err := provider.Meter("test").Int64Counter("things")
	if err != nil {
		t.Fatal(err)
	}
	counter.Add(t.Context(), 1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := provider.Shutdown(ctx); err == nil {
		t.Error("Shutdown: no error")
	}
}

// What the SDK would pass over is an error that names the variable.
func TestBadEnvironment(t *testing.T) {
	f := certificate(t)
	missing := filepath.Join(t.TempDir(), "missing.pem")
	noPEM := filepath.Join(t.TempDir(), "no.pem")
	write(t, noPEM, "hello")
	const prefix = "OTEL_EXPORTER_OTLP_"
	for name, c := range map[string]struct {
		env  map[string]string
		says []string
	}{
		"no scheme":       {map[string]string{prefix + "ENDPOINT": "localhost:4317"}, []string{prefix + "ENDPOINT=localhost:4317: it has no scheme: write http://localhost:4317"}},
		"no scheme, IP":   {map[string]string{prefix + "ENDPOINT": "127.0.0.1:4317"}, []string{"write http://127.0.0.1:4317"}},
		"unparsable":      {map[string]string{prefix + "METRICS_ENDPOINT": "http://[::1:4317"}, []string{prefix + "METRICS_ENDPOINT=http://[::1:4317: missing ']' in host"}},
		"control":         {map[string]string{prefix + "ENDPOINT": "http://a\x7fb:4317"}, []string{prefix + "ENDPOINT="}},
		"scheme":          {map[string]string{prefix + "ENDPOINT": "grpc://localhost:4317"}, []string{"the scheme is grpc"}},
		"no host":         {map[string]string{prefix + "ENDPOINT": "http://:4317"}, []string{"it has no host"}},
		"path":            {map[string]string{prefix + "ENDPOINT": "http://localhost:4318/v1/metrics"}, []string{"it has a path, /v1/metrics"}},
		"no port":         {map[string]string{prefix + "ENDPOINT": "http://collector"}, []string{"write http://collector:4317"}},
		"bad port":        {map[string]string{prefix + "ENDPOINT": "https://collector:70000"}, []string{"70000 is no port"}},
		"protocol":        {map[string]string{prefix + "PROTOCOL": "http/protobuf"}, []string{prefix + "PROTOCOL=http/protobuf: here it can be grpc only"}},
		"compression":     {map[string]string{prefix + "METRICS_COMPRESSION": "zstd"}, []string{prefix + "METRICS_COMPRESSION=zstd"}},
		"insecure":        {map[string]string{prefix + "INSECURE": "yes"}, []string{prefix + "INSECURE=yes"}},
		"temporality":     {map[string]string{prefix + "METRICS_TEMPORALITY_PREFERENCE": "both"}, []string{prefix + "METRICS_TEMPORALITY_PREFERENCE=both"}},
		"aggregation":     {map[string]string{prefix + "METRICS_DEFAULT_HISTOGRAM_AGGREGATION": "none"}, []string{"HISTOGRAM_AGGREGATION=none"}},
		"timeout":         {map[string]string{prefix + "TIMEOUT": "10s"}, []string{prefix + "TIMEOUT=10s: whole milliseconds"}},
		"interval":        {map[string]string{"OTEL_METRIC_EXPORT_INTERVAL": "0"}, []string{"OTEL_METRIC_EXPORT_INTERVAL=0"}},
		"export timeout":  {map[string]string{"OTEL_METRIC_EXPORT_TIMEOUT": "-1"}, []string{"OTEL_METRIC_EXPORT_TIMEOUT=-1"}},
		"no CA file":      {map[string]string{prefix + "CERTIFICATE": missing}, []string{prefix + "CERTIFICATE: open " + missing}},
		"no CA":           {map[string]string{prefix + "CERTIFICATE": noPEM}, []string{prefix + "CERTIFICATE: " + noPEM + " has no certificate"}},
		"cert, no key":    {map[string]string{prefix + "CLIENT_CERTIFICATE": f.cert}, []string{prefix + "CLIENT_CERTIFICATE is set and " + prefix + "CLIENT_KEY isn't"}},
		"key, no cert":    {map[string]string{prefix + "METRICS_CLIENT_KEY": f.key}, []string{prefix + "METRICS_CLIENT_KEY is set and"}},
		"no cert file":    {map[string]string{prefix + "CLIENT_CERTIFICATE": missing, prefix + "CLIENT_KEY": f.key}, []string{prefix + "CLIENT_CERTIFICATE: open"}},
		"no key file":     {map[string]string{prefix + "CLIENT_CERTIFICATE": f.cert, prefix + "CLIENT_KEY": missing}, []string{prefix + "CLIENT_KEY: open"}},
		"no pair":         {map[string]string{prefix + "CLIENT_CERTIFICATE": f.cert, prefix + "CLIENT_KEY": f.cert}, []string{prefix + "CLIENT_KEY=" + f.cert}},
		"header":          {map[string]string{prefix + "HEADERS": "a=b,secret"}, []string{prefix + "HEADERS: header 2"}},
		"resource":        {map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "a=b,c"}, []string{`OTEL_RESOURCE_ATTRIBUTES: "c"`}},
		"several at once": {map[string]string{prefix + "TIMEOUT": "x", prefix + "PROTOCOL": "y"}, []string{"TIMEOUT=x", "PROTOCOL=y"}},
	} {
		t.Run(name, func(t *testing.T) {
			clearEnv(t)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			provider, err := otlpmetric.New(t.Context())
			if err == nil {
				_ = provider.Shutdown(t.Context())
				t.Fatal("no error")
			}
			for _, says := range append(c.says, "set up OTLP metrics: ") {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("error %q has no %q", err, says)
				}
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("error %q tells a header", err)
			}
		})
	}
	t.Run("wraps", func(t *testing.T) {
		clearEnv(t)
		t.Setenv(prefix+"CERTIFICATE", missing)
		if _, err := otlpmetric.New(t.Context()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("error %v", err)
		}
	})
}
