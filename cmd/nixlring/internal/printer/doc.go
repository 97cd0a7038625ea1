// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package printer reads rings and prints their events, as NIXL's example readers do, but for
// all layouts, and by default without consuming the events.
package printer
