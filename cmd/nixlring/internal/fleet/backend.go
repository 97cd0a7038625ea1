// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// BackendConfig says what to read from a backend.
type BackendConfig struct {
	URL        string
	HTTPConfig string        // path of a file with the authentication and TLS settings of Prometheus; empty for none
	Job        string        // service.name of the agents; empty for all
	End        time.Time     // zero for now
	Length     time.Duration // of the past that is read
	Live       bool          // go on, once the past was read
	Shown      bool          // read what only a person looks at, too: memory, and the buckets of the last minutes
}

const (
	// mostSteps and the limits of the time between two frames keep the answers of a backend small. Speeds are those of three
	// minutes, so frames must not be much further apart than a minute.
	mostSteps               = 120
	leastStep, greatestStep = 15 * time.Second, time.Minute
	// bucketsLength is more than the time over which quantiles are measured.
	bucketsLength = 5 * time.Minute
	// atOnce is the number of queries at a time. Backends limit them.
	atOnce = 4
	// answerTimeout limits the time of all queries together.
	answerTimeout = time.Minute
)

// Backend returns frames of the series in a backend with the HTTP API of Prometheus.
type Backend struct {
	cfg  Config
	from BackendConfig
	api  v1.API
	http http.RoundTripper
	name string

	step     time.Duration  // between two frames
	presence model.Duration // a series without a sample in this time is absent
	failed   bool           // the last time; the backend may recover
	end      time.Time      // of what was read; zero before the first frame
	known    names          // of the series in it
	frames   []*diagnose.Frame
	series   series
}

// OpenBackend returns a source. The error says what is wrong with the configuration. The backend isn't asked before the first frame.
func OpenBackend(cfg Config, from BackendConfig) (*Backend, error) {
	address, err := url.Parse(from.URL)
	if err != nil || address.Host == "" {
		return nil, fmt.Errorf("--prometheus %s: must be a URL, such as http://localhost:9090", from.URL)
	}
	var settings config.HTTPClientConfig
	if from.HTTPConfig != "" {
		read, _, err := config.LoadHTTPConfigFile(from.HTTPConfig)
		if err != nil {
			return nil, fmt.Errorf("--http.config.file %s: %w", from.HTTPConfig, err)
		}
		settings = *read
	} else {
		settings = config.DefaultHTTPClientConfig
	}
	transport, err := config.NewRoundTripperFromConfig(settings, "nixlring", config.WithUserAgent("nixlring"))
	if err != nil {
		return nil, fmt.Errorf("--http.config.file %s: %w", from.HTTPConfig, err)
	}
	if password, ok := address.User.Password(); ok {
		transport = config.NewBasicAuthRoundTripper(config.NewInlineSecret(address.User.Username()), config.NewInlineSecret(password), transport)
	}
	s := &Backend{cfg: cfg, from: from, name: units.Printable(address.Redacted()), series: newSeries(cfg.Include, from.Job)}
	address.User = nil
	client, err := api.NewClient(api.Config{Address: address.String(), RoundTripper: transport})
	if err != nil {
		return nil, fmt.Errorf("--prometheus %s: %w", s.name, err)
	}
	s.api, s.http = v1.NewAPI(client), transport
	return s, nil
}

// Name implements [Source].
func (s *Backend) Name() string { return s.name }

// Close implements [Source].
func (s *Backend) Close() error {
	(&http.Client{Transport: s.http}).CloseIdleConnections()
	return nil
}

// Next implements [Source]. The past is due at once.
func (s *Backend) Next(ctx context.Context) (*diagnose.Frame, error) {
	for len(s.frames) == 0 {
		switch {
		case s.failed && !wait(ctx, leastStep):
			return nil, ctx.Err()
		case s.end.IsZero():
		case !s.from.Live:
			return nil, io.EOF
		case !wait(ctx, s.end.Add(s.step).Sub(s.cfg.Now())):
			return nil, ctx.Err()
		}
		err := s.read(ctx)
		if s.failed = err != nil; s.failed {
			return nil, s.explain(ctx, err)
		}
	}
	f := s.frames[0]
	s.frames = s.frames[1:]
	return f, nil
}

// explain says what to do about an error.
func (s *Backend) explain(ctx context.Context, err error) error {
	answer, refused := errors.AsType[*v1.Error](err)
	refused = refused && (answer.Type == v1.ErrClient || answer.Type == v1.ErrBadResponse)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: no answer within %v; --job and a shorter --for make it faster", s.name, answerTimeout)
	case refused && (strings.HasSuffix(answer.Msg, strconv.Itoa(http.StatusUnauthorized)) || strings.HasSuffix(answer.Msg, strconv.Itoa(http.StatusForbidden))):
		return fmt.Errorf("%s: %s; specify a file with credentials with --http.config.file", s.name, answer.Msg)
	case refused:
		return fmt.Errorf("%s: %s; is it the address of Prometheus' HTTP API, without /api/v1?", s.name, units.Printable(answer.Msg))
	}
	if request, ok := errors.AsType[*url.Error](err); ok { // with a long URL
		err = request.Err
	}
	return fmt.Errorf("%s: %w", s.name, err)
}

// read reads the frames that are due.
func (s *Backend) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	end := s.cfg.Now()
	if at := s.from.End; !at.IsZero() && at.Before(end) { // in the future, all metrics would be missing
		end = at
	}
	begin := end.Add(-s.from.Length)
	names, notes, err := s.names(ctx, begin, end)
	if err != nil {
		return err
	}
	if s.end.IsZero() {
		if err := s.pace(ctx, names, end); err != nil {
			return err
		}
	} else {
		begin = s.end.Add(s.step)
	}
	// Backends align ranges that they cache.
	r := v1.Range{Start: begin.Truncate(s.step), End: end.Truncate(s.step), Step: s.step}
	if r.End.Before(r.Start) {
		return nil
	}
	queries, err := s.queries(ctx, names, r)
	if err != nil {
		return err
	}
	s.series.begin(r)
	more, err := s.ask(ctx, queries)
	if err != nil {
		return err
	}
	s.frames, s.end, s.known = s.series.frames(), r.End, names
	if len(s.frames) > 0 {
		last := s.frames[len(s.frames)-1]
		last.Notes = append(append(notes, names.missing()...), more...)
	}
	return nil
}

// names returns the names of the series of agents.
func (s *Backend) names(ctx context.Context, begin, end time.Time) (list names, notes []string, err error) {
	match := `{__name__=~"nixl[._].+"}`
	values, warnings, err := s.api.LabelValues(ctx, model.MetricNameLabel, []string{match}, begin, end)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range values {
		list = append(list, string(v))
	}
	if len(list.of(agentUp)) == 0 && len(list.of(ringCapacity)) == 0 {
		return nil, nil, fmt.Errorf("no series nixl_agent_up between %s and %s; does a Collector with the receiver nixl_shm export there?", begin.UTC().Format(time.RFC3339), end.UTC().Format(time.RFC3339))
	}
	return list, printable(warnings), nil
}

// pace sets the time between two frames, and how long a series may have no sample, given how often samples are stored.
func (s *Backend) pace(ctx context.Context, known names, end time.Time) error {
	const window = 5 * time.Minute
	var queries []string
	for _, m := range []metric{agentUp, ringCapacity} { // one at a time, because their labels are the same
		if len(known.of(m)) > 0 {
			// The subquery is evaluated at multiples of 5 minutes. The samples of the last minute show agents that are newer.
			queries = append(queries, fmt.Sprintf("max(max_over_time(count_over_time(%[1]s[5m])[%[2]s:5m])) or 5 * max(count_over_time(%[1]s[1m]))", s.selector(known, m), model.Duration(s.from.Length.Truncate(time.Second))))
		}
	}
	value, _, err := s.api.Query(ctx, strings.Join(queries, " or "), end)
	if err != nil {
		return err
	}
	vector, ok := value.(model.Vector)
	if !ok || len(vector) == 0 || vector[0].Value < 1 {
		of := ""
		if s.from.Job != "" {
			of = fmt.Sprintf(" with the service_name %q", s.from.Job)
		}
		return fmt.Errorf("no agent%s in the %s before %s; agents whose metrics have begun to arrive in the last minute may not be visible yet",
			of, units.Age(s.from.Length), end.UTC().Format(time.RFC3339))
	}
	interval := (window / time.Duration(vector[0].Value)).Round(time.Second)
	s.step = min(max(s.from.Length/mostSteps, leastStep), greatestStep)
	if s.step = max(s.step, interval); s.step%leastStep > 0 {
		s.step += leastStep - s.step%leastStep
	}
	s.presence = model.Duration(max(s.step, 2*interval) + leastStep/3)
	return nil
}

// selector returns a selector of the series of a metric.
func (s *Backend) selector(known names, m metric) string {
	found, job := known.of(m), ""
	if s.from.Job != "" && !strings.Contains(strings.Join(found, ""), ".") { // else the label has dots, too, and not all backends can select it
		job = fmt.Sprintf(",service_name=%q", s.from.Job)
	}
	return fmt.Sprintf("{__name__=~%q%s}", escaped(strings.Join(found, "|")), job)
}

// escaped returns a regular expression that matches names. In names, only a dot is special.
func escaped(name string) string { return strings.ReplaceAll(name, ".", "[.]") }

// query is a query over a range of time, and what its series are.
type query struct {
	metric
	expr string
	r    v1.Range
}

// queries returns a query per metric that the backend has, and that is used. Of the many types of errors, usually few occur.
func (s *Backend) queries(ctx context.Context, known names, r v1.Range) (list []query, err error) {
	for _, m := range metrics {
		if len(known.of(m)) == 0 || (m.what == memory || m.what >= times) && !s.from.Shown {
			continue
		}
		selector, q := s.selector(known, m), query{m, "", r}
		if m.what == failed {
			if selector, err = s.occurred(ctx, selector, r.End); err != nil {
				return nil, err
			}
			if selector == "" {
				continue
			}
		}
		samples := fmt.Sprintf("%s[%s]", selector, s.presence)
		switch q.expr = "last_over_time(" + samples + ")"; {
		case m.rare: // most series stay as they were, so the backend returns only the others, with what they were before
			q.r.Start = r.Start.Add(-r.Step)
			q.expr += fmt.Sprintf(" and increase(%s[%s] @ end()) > 0", selector, s.presence+model.Duration(r.End.Sub(q.r.Start)))
		case m.what == fill:
			q.expr = "max_over_time(" + samples + ")"
		case m.what >= times: // there are many, and only the newest are shown
			q.r.Start = r.Start.Add(max(0, r.End.Sub(r.Start)-bucketsLength).Truncate(r.Step))
		case m.native != "":
			q.expr = m.native + "(" + q.expr + ")"
		}
		list = append(list, q)
	}
	return list, nil
}

// occurred restricts a selector of errors to the types that are above 0, or returns "" if none is.
func (s *Backend) occurred(ctx context.Context, selector string, end time.Time) (string, error) {
	name := model.LabelName(strings.ReplaceAll(semconv.ErrorType, ".", "_"))
	value, _, err := s.api.Query(ctx, fmt.Sprintf("count by (%s) (max_over_time(%s[%s]) > 0)", name, selector, model.Duration(s.from.Length.Truncate(time.Second))), end)
	if err != nil {
		return "", err
	}
	vector, _ := value.(model.Vector)
	var types []string
	for _, sample := range vector {
		if sample.Metric[name] == "" {
			return selector, nil // the label has a dot
		}
		types = append(types, string(sample.Metric[name]))
	}
	if len(types) == 0 {
		return "", nil
	}
	slices.Sort(types)
	return fmt.Sprintf("%s,%s=~%q}", strings.TrimSuffix(selector, "}"), name, strings.Join(types, "|")), nil
}

// ask adds the answers of all queries to the series.
func (s *Backend) ask(ctx context.Context, queries []query) (notes []string, err error) {
	var mu sync.Mutex // guards notes and the series
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(atOnce)
	for _, q := range queries {
		asking.Go(func() error {
			value, warnings, err := s.api.QueryRange(ctx, q.expr, q.r)
			if err != nil {
				return err
			}
			matrix, ok := value.(model.Matrix)
			if !ok {
				return fmt.Errorf("%s: the answer isn't a matrix", q.expr)
			}
			mu.Lock()
			defer mu.Unlock()
			s.series.add(q.metric, matrix)
			for _, w := range printable(warnings) {
				if !slices.Contains(notes, w) {
					notes = append(notes, w)
				}
			}
			return nil
		})
	}
	err = asking.Wait()
	return notes, err
}

// kubernetesName matches what is safe in a command. The names may come from a stranger.
var kubernetesName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*$`)

// Locate adds to a finding how to find the host of its first agent, if the metrics don't name it.
func (s *Backend) Locate(f *diagnose.Finding) {
	if len(f.Agents) == 0 || f.Agents[0].Host != "" {
		return
	}
	a := f.Agents[0]
	if kubernetesName.MatchString(a.Namespace) && kubernetesName.MatchString(a.Pod) {
		f.Commands = diagnose.CommandsOn(fmt.Sprintf("$(kubectl -n %s get pod %s -o jsonpath={.spec.nodeName})", a.Namespace, a.Pod))
		return
	}
	f.Next += " Which host it is isn't known, because the metrics have no label host_name. Let the backend keep the resource attribute host.name: see dashboards/README.md#backends."
	if one := s.series.agents[a.ID]; one != nil && one.attributes[instance] != "" {
		f.Next += " Their label instance is " + one.attributes[instance] + "."
	}
}

func printable(warnings v1.Warnings) (list []string) {
	for _, w := range warnings {
		list = append(list, units.Printable(w))
	}
	return list
}
