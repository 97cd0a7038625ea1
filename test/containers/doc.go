// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package containers has only tests, which run agents in real containers and look
// for them from the host.
//
// `make container-test` runs them. They take Linux, root, podman and runc (on
// Debian: apt-get install podman runc), and a file system on which podman can use
// its overlay driver. They need neither a network nor a registry: the image has one
// static program, which is built here. Containers, images and cgroups are the
// tests' own, and are removed afterwards.
//
// Without the variable NIXL_CONTAINER_TEST, which `make container-test` sets, the
// tests are skipped.
package containers
