// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// serve runs nixlring web until the test ends, and returns the address of the page. read returns
// what it has printed to standard error, after it has ended.
func serve(t *testing.T, args ...string) (address string, read func() string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, out := io.Pipe()
	var errs strings.Builder
	done := make(chan int, 1)
	go func() {
		w := world{out: out, err: &errs, now: time.Now, proc: procWith(t), env: quick}
		done <- run(ctx, w, append([]string{"web"}, args...))
	}()
	end := func() string {
		stop()
		if code := <-done; code != exitOK {
			t.Errorf("exit code %d: %s", code, errs.String())
		}
		done <- exitOK // for the next call
		return errs.String()
	}
	t.Cleanup(func() { end() })
	line, err := bufio.NewReader(r).ReadString('\n')
	must.OK(t, err)
	return strings.TrimSpace(line), end
}

// get returns the status and the body of a response.
func get(t *testing.T, url string) (status int, body io.Reader) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must.OK(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	response, err := client.Do(request)
	must.OK(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response.StatusCode, response.Body
}

func TestWebServesWhatTheAgentsDo(t *testing.T) {
	dir := simulating(t, "--no-consumer", "--scenario", "straggler")
	address, _ := serve(t, dir, "--listen", "127.0.0.1:0")
	if !regexp.MustCompile(`^http://127\.0\.0\.1:\d+/$`).MatchString(address) {
		t.Fatal(address)
	}
	must.EventuallyTrue(t, "state that names the straggler", func() bool {
		_, body := get(t, address+"state.json")
		text, err := io.ReadAll(body)
		must.OK(t, err)
		return strings.Contains(string(text), `"kind":"straggler","severity":"warning","agents":[{"id":"`+dir+`/sim-3"`)
	})
}

func TestWebExplainsAddressesThatItCanNotListenOn(t *testing.T) {
	address, ended := serve(t, t.TempDir(), "--listen", "127.0.0.1:0")
	if status, _ := get(t, address); status != http.StatusOK {
		t.Error(status)
	}
	for listen, want := range map[string]string{
		"0.0.0.0:0": "other hosts could open the page", "[::]:0": "other hosts could open the page", ":0": "other hosts could open the page",
		strings.Trim(address, "htp:/"): "choose another port, or 0 for any",
	} {
		if r := nixlring(t.Context(), nil, "web", t.TempDir(), "--listen", listen); r.code == exitOK || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v", listen, r)
		}
	}
	if errs := ended(); errs != "" {
		t.Error(errs)
	}
}
