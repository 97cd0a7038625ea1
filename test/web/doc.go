// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package web tests the page of nixlring web, and make demo, in Chromium.
//
// `make dashboards-test` builds the programs and sets these environment variables:
//
//	NIXLRING    the tool
//	CHROMIUM    the browser
//	SCREENSHOT  a directory for pictures of the pages; optional
//
// A test is skipped if one of the first two isn't set.
package web
