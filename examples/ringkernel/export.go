// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

const (
	// shutdownTime bounds the last export, so that a backend that can't be reached
	// doesn't delay the exit for long.
	shutdownTime = 5 * time.Second
	// traced is the share of lines that are traced.
	traced = 0.01
)

// export sets the global providers. Metrics and traces go where OTEL_METRICS_EXPORTER and
// OTEL_TRACES_EXPORTER say, by default over OTLP. Metrics are also on a Prometheus page.
// shutdown exports the last metrics.
func export(ctx context.Context, listen string) (shutdown func() error, err error) {
	reader, err := autoexport.NewMetricReader(ctx)
	if err != nil {
		return nil, err
	}
	spans, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nil, err
	}
	// Attributes in OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
	res, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "ringkernel-example")), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	readers := []metric.Option{metric.WithResource(res), metric.WithReader(reader)}
	stopPage := func(context.Context) error { return nil }
	if listen != "" {
		var page metric.Reader
		if page, stopPage, err = servePage(ctx, listen); err != nil {
			return nil, err
		}
		readers = append(readers, metric.WithReader(page))
	}
	meters := metric.NewMeterProvider(readers...)
	tracers := trace.NewTracerProvider(trace.WithResource(res), trace.WithBatcher(spans),
		trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(traced))))
	otel.SetMeterProvider(meters)
	otel.SetTracerProvider(tracers)
	return func() error {
		// Don't use the outer ctx, which is done when the program is interrupted.
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		if err := errors.Join(meters.Shutdown(ctx), tracers.Shutdown(ctx), stopPage(ctx)); err != nil {
			return fmt.Errorf("export the last metrics and traces: %w", err)
		}
		return nil
	}, nil
}

// servePage serves a Prometheus page with what the returned reader collects.
func servePage(ctx context.Context, listen string) (page metric.Reader, stop func(context.Context) error, err error) {
	registry := prometheus.NewRegistry()
	if page, err = promexporter.New(promexporter.WithRegisterer(registry)); err != nil {
		return nil, nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return nil, nil, fmt.Errorf("serve the Prometheus page: %w; set another address with -listen", err)
	}
	mux := http.NewServeMux()
	// Only OpenMetrics has exemplars.
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return page, func(ctx context.Context) error {
		err := server.Shutdown(ctx)
		if stopped := <-served; !errors.Is(stopped, http.ErrServerClosed) {
			return errors.Join(err, stopped)
		}
		return err
	}, nil
}
