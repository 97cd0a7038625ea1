package dashboards

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Grafana are the dashboards that are written for Grafana.
func Grafana() []Dashboard {
	return []Dashboard{cluster(), agentsOverview(), oneAgent(), ringHealth(), ringKernels(), splitInference()}
}

// Files are all files, by their paths under the directory of dashboards.
func Files() (map[string][]byte, error) {
	all := map[string]any{"victoriametrics/nixl.json": newVMUI(demo())}
	for _, d := range Grafana() {
		all["grafana/"+d.UID+".json"] = newGrafana(d)
	}
	files := map[string][]byte{"rules.yaml": rules()}
	for name, content := range all {
		text, err := encode(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = text
	}
	return files, nil
}

// encode leaves what is common in PromQL readable: < and >.
func encode(content any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(content)
	return b.Bytes(), err
}
