// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Grafana returns the dashboards for Grafana.
func Grafana() []Dashboard {
	return []Dashboard{overview(), oneAgent(), ringHealth(), cluster(), programs()}
}

// Files returns all files, by path relative to the dashboards directory.
func Files() (map[string][]byte, error) {
	files := make(map[string][]byte)
	for _, d := range Grafana() {
		text, err := d.grafana()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.UID, err)
		}
		files["grafana/"+d.UID+".json"] = text
	}
	return files, nil
}

// grafana returns the dashboard as JSON, without escaping < and >, which are common in PromQL. The SDK's types
// escape them, and its annotations lack the format fields of a Prometheus data source.
func (d *Dashboard) grafana() ([]byte, error) {
	built, err := d.build()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(built)
	if err != nil {
		return nil, err
	}
	tree := make(map[string]any)
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	tree["annotations"] = map[string]any{"list": d.annotations()}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err = encoder.Encode(tree)
	return b.Bytes(), err
}
