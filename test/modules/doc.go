// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package modules tests what the project's modules bring into the module graph
// of a program that imports them, and that the recipes of the Collectors agree.
package modules
