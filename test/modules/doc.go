// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package modules tests which modules the project's modules add to the module
// graph of a program that imports them.
package modules
