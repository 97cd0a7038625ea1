// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package dashboards contains the alerts and the recording rules for Prometheus and vmalert, so that programs can evaluate the same
// expressions. The directory also has the dashboards for Grafana.
package dashboards

import _ "embed" // rules

// Alerts is the file alerts.yaml.
//
//go:embed alerts.yaml
var Alerts []byte

// Rules is the file rules.yaml.
//
//go:embed rules.yaml
var Rules []byte
