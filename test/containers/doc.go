// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package containers tests that agents in real containers are discovered from the
// host, and that hostile containers harm no other agent. It has only tests.
//
// `make container-test` runs them. They need Linux, root, podman and runc (on
// Debian: apt-get install podman runc), and a file system that supports podman's
// overlay driver. They need no network and no registry: they build an image with
// one static program. They create their own containers, images and cgroups, and
// remove them afterwards.
//
// The tests are skipped unless NIXL_CONTAINER_TEST is set, as `make container-test`
// does.
package containers
