// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package web serves a page about agents to a browser on the same host. The page asks for the newest [state] every
// two seconds, and keeps its history itself.
package web
