// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"text/template"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v2"
	"golang.org/x/sync/errgroup"

	"github.com/nixl-otel/nixl-otel/dashboards"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// rule is an alert or a recording rule.
type rule struct {
	Alert, Record, Expr string
	For                 model.Duration
	Labels, Annotations map[string]string
}

var alertRules, recordingRules = sync.OnceValue(func() []rule { return readRules(dashboards.Alerts) }), sync.OnceValue(func() []rule { return readRules(dashboards.Rules) })

// readRules returns the rules of a file that is a part of the program.
func readRules(text []byte) (list []rule) {
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(text, &file); err != nil {
		panic(err)
	}
	for _, g := range file.Groups {
		list = append(list, g.Rules...)
	}
	return list
}

// covered has the kinds of findings that say what an alert says. Without recording rules, only the other alerts are evaluated: those
// that compare with the last day, or with what an agent did before, need them.
var covered = map[string][]diagnose.Kind{
	"NIXLStraggler":      {diagnose.Straggler, diagnose.Slower, diagnose.JobSlower},
	"NIXLSlower":         {diagnose.Straggler, diagnose.Slower, diagnose.JobSlower},
	"NIXLAgentStalled":   {diagnose.Stalled, diagnose.JobStalled},
	"NIXLJobStalled":     {diagnose.Stalled, diagnose.JobStalled},
	"NIXLErrors":         {diagnose.Failing, diagnose.SomeFail},
	"NIXLAgentErrors":    {diagnose.Failing, diagnose.SomeFail},
	"NIXLAgentCrashLoop": {diagnose.CrashLoop},
	"NIXLAgentMissing":   {diagnose.Missing},
	"NIXLCollectorGone":  {diagnose.Missing},
	"NIXLNoData":         {diagnose.Missing},
	"NIXLEventsLost":     {diagnose.EventsLost, diagnose.RingFull},
	"NIXLEventsTaken":    {diagnose.EventsTaken},
	"NIXLRingNearlyFull": {diagnose.EventsLost, diagnose.RingFull, diagnose.NearlyFull},
}

// rulesLoaded is a series that the recording rules always have.
const rulesLoaded = "nixl_threshold:straggler_speed"

// Alerts begins to evaluate the alerts at the end of what was read. The function that it returns waits for them, and returns what the
// findings don't say. The notes say what couldn't be evaluated.
func (s *Backend) Alerts(ctx context.Context) (wait func(found []diagnose.Finding) (list []diagnose.Finding, check diagnose.Check, notes []string)) {
	loaded := slices.Contains(s.known, rulesLoaded)
	alerts := slices.DeleteFunc(slices.Clone(alertRules()), func(a rule) bool { return !loaded && covered[a.Alert] != nil })
	vectors, errs, done := make([]model.Vector, len(alerts)), make([]error, len(alerts)), make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		var asking errgroup.Group
		asking.SetLimit(atOnce)
		for i, a := range alerts {
			asking.Go(func() error {
				vectors[i], errs[i] = s.firing(ctx, a, loaded)
				return nil
			})
		}
		_ = asking.Wait() // each has an error of its own
	}()
	return func(found []diagnose.Finding) (list []diagnose.Finding, check diagnose.Check, notes []string) {
		<-done
		return s.alerts(alerts, vectors, errs, found)
	}
}

// alerts returns what the samples of alerts say and findings don't.
func (s *Backend) alerts(alerts []rule, vectors []model.Vector, errs []error, found []diagnose.Finding) (list []diagnose.Finding, check diagnose.Check, notes []string) {
	var evaluated []string
	check = diagnose.Check{Name: "alerts", Kinds: []diagnose.Kind{}, Well: true}
	for i, a := range alerts {
		if errs[i] != nil {
			check.Well, notes = false, append(notes, fmt.Sprintf("the alert %s can't be evaluated: %v", a.Alert, errs[i]))
			continue
		}
		evaluated = append(evaluated, a.Alert)
		for _, sample := range vectors[i] {
			if f, ok := s.alerted(a, sample, found); ok {
				list = append(list, f)
			}
		}
	}
	check.What = fmt.Sprintf("%d evaluated, with no other problem", len(evaluated))
	if len(list) > 0 {
		check.What = fmt.Sprintf("%d evaluated", len(evaluated))
	}
	if !slices.Contains(s.known, rulesLoaded) {
		check.What = "the backend has no recording rules, so speeds weren't compared with the last day. Without them, these were evaluated: " + strings.Join(evaluated, ", ")
	}
	return list, check, notes
}

// firing returns the samples of an alert that has held for as long as it requires.
func (s *Backend) firing(ctx context.Context, a rule, loaded bool) (list model.Vector, err error) {
	expr := strings.TrimSpace(a.Expr)
	if !loaded {
		if expr, err = inline(expr, false); err != nil {
			return nil, err
		}
	}
	if expr, err = s.known.translate(expr); err != nil {
		return nil, err
	}
	const step = time.Minute
	held := time.Duration(a.For)
	value, _, err := s.api.QueryRange(ctx, expr, v1.Range{Start: s.end.Add(-held), End: s.end, Step: step})
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	matrix, _ := value.(model.Matrix)
	for _, stream := range matrix {
		if n := len(stream.Values); n > int(held/step) {
			list = append(list, &model.Sample{Metric: stream.Metric, Value: stream.Values[n-1].Value})
		}
	}
	return list, nil
}

// alerted returns what an alert says, unless a finding says it, or none of the selected agents is affected.
func (s *Backend) alerted(a rule, sample *model.Sample, found []diagnose.Finding) (f diagnose.Finding, ok bool) {
	about := identity(sample.Metric)
	of := func(id diagnose.Identity) bool {
		for _, pair := range [][2]string{{about.Cluster, id.Cluster}, {about.Namespace, id.Namespace}, {about.Service, id.Service}, {about.Pod, id.Pod}, {about.Host, id.Host}, {about.Name, id.Name}} {
			if pair[0] != "" && pair[0] != pair[1] {
				return false
			}
		}
		return true
	}
	for _, f := range found {
		if slices.Contains(covered[a.Alert], f.Kind) && slices.ContainsFunc(f.Agents, of) {
			return f, false
		}
	}
	var agents []diagnose.Identity
	if about != (diagnose.Identity{}) { // else it is about a Collector, or all
		for _, id := range slices.Sorted(maps.Keys(s.series.agents)) {
			if one := s.series.agents[id].Identity; of(one) {
				agents = append(agents, one)
			}
		}
	}
	if len(agents) == 0 {
		if len(s.cfg.Include) > 0 || s.from.Job != "" {
			return f, false
		}
		if about != (diagnose.Identity{}) { // its metrics stopped before what was read
			agents = append(agents, about)
		}
	}
	labels := make(map[string]string)
	for name, value := range sample.Metric {
		labels[string(name)] = units.Printable(string(value))
	}
	maps.Copy(labels, a.Labels)
	say := func(annotation string) string {
		return expand(a.Annotations[annotation], labels, float64(sample.Value))
	}
	return diagnose.Alerted(a.Alert, diagnose.Severity(labels["severity"]), agents, say("summary"), say("description"), "See "+a.Annotations["runbook_url"]), true
}

// expand returns a text of an alert, as Prometheus does.
func expand(text string, labels map[string]string, value float64) string {
	t := template.Must(template.New("").Funcs(template.FuncMap{
		"humanize":           func(v float64) string { return units.Bare(units.Rate(v)) },
		"humanizePercentage": func(v float64) string { return fmt.Sprintf("%.4g%%", 100*v) },
	}).Parse("{{ $labels := .Labels }}{{ $value := .Value }}" + text))
	var b strings.Builder
	if err := t.Execute(&b, map[string]any{"Labels": labels, "Value": value}); err != nil {
		panic(err) // the texts are a part of the program
	}
	return b.String()
}

// reference matches a recorded series in an expression, with what selects some of it, and its range.
var reference = regexp.MustCompile(`(\b[a-z_]+:nixl_\w+:\w+|\bnixl_[a-z]+:\w+|\bnamespace:requests:running)(\{[^}]*\})?(\[\w+(?::\w+)?\])?( offset \w+)?`)

// ofBoth selects the series of both directions together.
const ofBoth = `{nixl_transfer_direction=""}`

// inline replaces recorded series in an expression with the expressions of their rules. If only the series of both directions are used,
// those of each direction, which follow them in the rules, aren't computed.
func inline(expr string, both bool) (string, error) {
	var errs []error
	text := reference.ReplaceAllStringFunc(expr, func(text string) string {
		part := reference.FindStringSubmatch(text)
		name, matchers, over, offset := part[1], part[2], part[3], part[4]
		rules := slices.DeleteFunc(slices.Clone(recordingRules()), func(r rule) bool { return r.Record != name })
		if len(rules) != 1 || strings.Contains(rules[0].Expr, name) || matchers != "" && matchers != ofBoth { // an expression can't have matchers
			errs = append(errs, fmt.Errorf("it needs the recording rule %s", name))
			return text
		}
		inner, both := rules[0].Expr, both || matchers == ofBoth
		if both {
			inner, _, _ = strings.Cut(inner, "\nor\n")
		}
		inner, err := inline(inner, both)
		errs, inner = append(errs, err), "("+inner+")"
		switch {
		case over == "" && offset != "": // an expression can't have an offset
			return "last_over_time(" + inner + "[1m:1m]" + offset + ")"
		case over != "" && !strings.Contains(over, ":"):
			over = strings.TrimSuffix(over, "]") + ":1m]"
		}
		return inner + over + offset
	})
	return text, errors.Join(errs...)
}
