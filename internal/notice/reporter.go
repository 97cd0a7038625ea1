// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Limits of the lines per minute. Any process that can write to a ring can break it repeatedly.
// A start on a host with many agents must leave room for warnings.
const (
	maxInfo    = 40
	maxWarning = 60
)

// Reporter reports notices when they occur, but drops repetitions: the same text about the same
// path within a minute, and lines beyond the limits of a minute. It is safe for concurrent use.
type Reporter struct {
	report func(Notice)
	now    func() time.Time

	mu         sync.Mutex
	began      time.Time // when the current minute began
	seen       map[line]bool
	reported   map[slog.Level]int
	suppressed int
}

// line is what a repetition has in common with the first notice.
type line struct{ path, text string }

// New returns a Reporter that calls report for each line. report must not block, must not call
// the Reporter, and must be safe for concurrent use.
func New(report func(Notice), now func() time.Time) *Reporter {
	return &Reporter{report: report, now: now, began: now(), seen: make(map[line]bool), reported: make(map[slog.Level]int)}
}

// Report reports a notice, unless it is a repetition.
func (r *Reporter) Report(n Notice) {
	if passed := r.minute(false); passed != nil {
		r.report(*passed)
	}
	if r.admit(&n) {
		r.report(n)
	}
}

// Close reports how many notices were suppressed.
func (r *Reporter) Close() {
	if passed := r.minute(true); passed != nil {
		r.report(*passed)
	}
}

// minute begins a new minute if the current one has passed, or in any case. It returns a notice
// about the notices that were suppressed in the last one, or nil.
func (r *Reporter) minute(always bool) *Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if !always && now.Sub(r.began) < time.Minute {
		return nil
	}
	suppressed := r.suppressed
	r.began, r.suppressed = now, 0
	clear(r.seen)
	clear(r.reported)
	if suppressed == 0 {
		return nil
	}
	return &Notice{Level: slog.LevelInfo, Text: fmt.Sprintf("%d suppressed: repetitions, or too many lines in a minute", suppressed)}
}

func (r *Reporter) admit(n *Notice) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	class, limit := slog.LevelWarn, maxWarning
	if n.Level < slog.LevelWarn {
		class, limit = n.Level, maxInfo
	}
	key := line{n.Path, n.Text}
	if r.seen[key] || r.reported[class] >= limit {
		r.suppressed++
		return false
	}
	r.seen[key] = true
	r.reported[class]++
	return true
}
