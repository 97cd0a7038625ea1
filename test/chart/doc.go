// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package chart tests the Helm chart in deploy/helm and the manifests in
// examples/kubernetes. Helm's own engine renders the chart; the types of
// Kubernetes and of the Prometheus operator decode the result strictly, so a
// misspelled field is an error.
package chart
