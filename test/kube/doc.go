// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package kube tests the Helm chart in a real cluster, which scripts/kube-test.sh
// prepares. The test runs inference pods with the same names in two namespaces.
// It checks that each series has the attributes of the right pod, and that no
// event is lost or counted twice while pods, Collectors and the kubelet restart.
package kube
