// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package uncollected_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/internal/uncollected"
)

// pass lets time pass in a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }

func TestProducerIsReportedOnceUnlessCollected(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(*uncollected.Timer)
		after time.Duration // from the start
		want  string        // empty for no report
	}{
		"before the timeout":          {func(*uncollected.Timer) {}, 2*time.Minute - 1, ""},
		"after the timeout":           {func(*uncollected.Timer) {}, 2 * time.Minute, "the metrics of agents for 2m0s: "},
		"collected":                   {(*uncollected.Timer).Collected, time.Hour, ""},
		"closed immediately":          {(*uncollected.Timer).Closing, 2*time.Minute - 1, ""},
		"closed immediately, timeout": {(*uncollected.Timer).Closing, time.Hour, "for 2m0s: "},
		"closed after an interval":    {func(w *uncollected.Timer) { pass(time.Minute); w.Closing(); w.Closing() }, time.Hour, "for 1m0s: "},
		"collected and closed":        {func(w *uncollected.Timer) { w.Collected(); pass(time.Hour); w.Closing() }, time.Hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var errs []error
				start := time.Now()
				w := uncollected.Start("agents", time.Now, func(err error) { errs = append(errs, err) })
				c.do(w)
				pass(c.after - time.Since(start))
				synctest.Wait()
				w.Collected() // stop the timer, so that the bubble can end
				switch {
				case c.want == "" && len(errs) > 0:
					t.Errorf("reported %v", errs)
				case c.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want)):
					t.Errorf("reported %v, want one error with %q", errs, c.want)
				}
			})
		})
	}
}
