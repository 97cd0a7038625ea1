// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package chart tests the Helm chart in deploy/helm and the manifests in
// examples/kubernetes. It renders the chart with Helm's engine and decodes the
// result strictly into the types of Kubernetes and of the Prometheus operator, so a
// misspelled field is an error.
package chart
