// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// testTop runs each query with topk or bottomk for two series over many points.
// All points must have the same two series.
func (b backend) testTop(t *testing.T) {
	paths, err := filepath.Glob(file(t, "dashboards", "grafana", "*.json"))
	must.OK(t, err)
	tried := 0
	for _, path := range paths {
		var d grafana
		readJSON(t, path, &d)
		if d.UID == "nixl-cluster" {
			continue // there are only two hosts
		}
		for p := range d.all {
			for _, target := range p.Targets {
				if !strings.Contains(target.Expr, "topk($top, ") && !strings.Contains(target.Expr, "bottomk($top, ") {
					continue
				}
				tried++
				query := strings.NewReplacer("$__rate_interval", window, "$__range", "30s", "$top", "2",
					"$host", host, "$agent", "(steady|overflow|slow)-.*",
					"$cluster", ".*", "$namespace", ".*", "$job", ".*", "$pod", ".*", "$model", ".*").Replace(target.Expr)
				must.Eventually(t, func() string {
					if n := b.seriesIn(t, query); n < 1 || n > 2 {
						return fmt.Sprintf("%s: %s: %d series, want 2: %s", d.UID, p.Title, n, query)
					}
					return ""
				})
			}
		}
	}
	if tried == 0 {
		t.Error("no query uses topk or bottomk with $top")
	}
}

// seriesIn returns the number of series of a query for the last 30 seconds.
func (b backend) seriesIn(t *testing.T, expr string) int {
	t.Helper()
	now := time.Now().Unix()
	text, err := b.get(t, "/api/v1/query_range", url.Values{
		"query": {expr}, "start": {strconv.FormatInt(now-30, 10)}, "end": {strconv.FormatInt(now, 10)}, "step": {"1s"},
	})
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	var answer struct {
		Data struct{ Result []json.RawMessage }
	}
	must.OK(t, json.Unmarshal(text, &answer))
	return len(answer.Data.Result)
}
