// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode"
)

// maxCauses limits the number of lines for different causes.
const maxCauses = 8

// sum merges notices of one kind into one notice per cause. If more is set, the text states
// that other subjects were reported before.
func sum(list []Notice, more bool) []Notice {
	var causes []string
	groups := make(map[string][]Notice)
	for _, n := range list {
		cause := n.cause()
		if groups[cause] == nil {
			if len(causes) == maxCauses {
				cause = causes[maxCauses-1]
			} else {
				causes = append(causes, cause)
			}
		}
		groups[cause] = append(groups[cause], n)
	}
	sums := make([]Notice, len(causes))
	for i, cause := range causes {
		sums[i] = merge(groups[cause], cause, more)
	}
	return sums
}

// merge merges several notices into one, with the error and the text of the first by path.
func merge(list []Notice, cause string, more bool) Notice {
	slices.SortFunc(list, func(a, b Notice) int { return strings.Compare(a.Path, b.Path) })
	first, last := list[0], list[len(list)-1]
	if len(list) == 1 {
		return first
	}
	what, text := first.Kind.subjects(), first.Text
	if more {
		what = "more " + what
	}
	level, again, mixed := slog.LevelInfo, 0, false
	for _, n := range list {
		level = max(level, n.Level)
		again += n.Again
		mixed = mixed || n.cause() != cause
	}
	if mixed {
		text = "several causes, the first: " + text
	}
	return Notice{
		Kind: first.Kind, Level: level, Err: first.Err, Again: again,
		Text: fmt.Sprintf("%d %s, %s to %s: %s", len(list), what, readable(first.Path), readable(last.Path), text),
	}
}

// cause returns a key that is equal for notices of one kind with the same cause. It ignores
// the subject, and numbers such as positions and sizes.
func (n Notice) cause() string {
	s := n.Text
	if n.Err != nil {
		s += "\x00" + strings.ReplaceAll(n.Err.Error(), n.Path, "")
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, s)
}
