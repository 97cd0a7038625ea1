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
		rendered, err := newGrafana(d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.UID, err)
		}
		text, err := encode(rendered)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.UID, err)
		}
		files["grafana/"+d.UID+".json"] = text
	}
	return files, nil
}

// encode encodes content without escaping < and >, which are common in PromQL. The SDK's types
// escape them, so encode decodes their JSON to a tree first.
func encode(content any) ([]byte, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err = encoder.Encode(tree)
	return b.Bytes(), err
}
