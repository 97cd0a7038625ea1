// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package kube tests the Helm chart in a real cluster, which scripts/kube-test.sh
// prepares: with inference pods of two namespaces that have the same names, it
// checks that each series has the inference pod's attributes, and that no event
// is lost or counted twice while pods, Collectors, and the kubelet restart.
package kube
