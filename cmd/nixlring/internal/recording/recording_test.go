// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// read returns the seconds of the frames, and why there are no more.
func read(t *testing.T, content []byte) (seconds []int64, err error) {
	t.Helper()
	r, err := recording.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		f, err := r.Next()
		if err != nil {
			return seconds, err
		}
		seconds = append(seconds, f.Time.Unix())
	}
}

func TestFramesAreReadInOrderUpToWhereTheRecordingEnds(t *testing.T) {
	var out bytes.Buffer
	w, err := recording.NewWriter(&out)
	must.OK(t, err)
	for _, second := range []int64{1, 2, 1, 2, 3} { // the clock was set back
		must.OK(t, w.Write(&diagnose.Frame{Time: time.Unix(second, 0)}))
	}
	crashed := bytes.Clone(out.Bytes())
	must.OK(t, w.Close())
	for name, tt := range map[string]struct {
		content []byte
		want    error
	}{
		"complete":  {out.Bytes(), io.EOF},
		"crashed":   {crashed, recording.ErrTruncated},
		"cut":       {crashed[:len(crashed)-1], recording.ErrTruncated},
		"more":      {append(bytes.Clone(out.Bytes()), "Dear Sir"...), recording.ErrDamaged},
		"not zstd":  {[]byte("Dear Sir or Madam"), recording.ErrFormat},
		"empty":     {nil, recording.ErrFormat},
		"only JSON": {[]byte(`{"time":"soon"}` + "\n"), recording.ErrFormat},
	} {
		got, err := read(t, tt.content)
		want := []int64{1, 2, 3}
		switch {
		case name == "cut":
			want = want[:2]
		case errors.Is(tt.want, recording.ErrFormat):
			want = nil
		}
		if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v: %s", name, err, tt.want, diff)
		}
	}
}

func TestFramesThatNoProgramTakesAreDamaged(t *testing.T) {
	const first = `{"time":"2026-01-15T14:30:25Z","agents":[]}` + "\n"
	for _, agents := range []string{
		`[{"id":"a"},{"id":"b"},{"id":"a"}]`,
		`[{"id":"a","times":{"bounds":[1,2],"counts":[1]}}]`,
		`[{"id":"a","sizes":{"bounds":[2,1],"counts":[1,1,1]}}]`,
		`[{"id":"a","sizes":{"bounds":[1]}}]`,
		`{}`,
	} {
		got, err := read(t, []byte(first+`{"time":"2026-01-15T14:30:26Z","agents":`+agents+"}\n"))
		if len(got) != 1 || !errors.Is(err, recording.ErrDamaged) || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v after %d frames", agents, err, len(got))
		}
	}
}
