// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package web serves the page of nixlring web: what is wrong with the agents of a host, and what
// they did in the last half hour.
//
// A [Page] takes samples, which a board of package top turns into rows and findings. Each sample
// is encoded once, as a frame, and sent to all browsers by server-sent events. Every few seconds,
// a point is added to the history. The encoded points are kept, so a new browser gets them
// without another encoding. A browser that doesn't read is disconnected, and never delays a
// sample.
//
// The order of files: page.go: samples and history; frame.go: what is sent; clients.go: who receives it;
// handler.go: HTTP; guard.go: who may ask. The directory page has what the browser runs: app.js,
// charts.js and uPlot, without a build step.
package web
