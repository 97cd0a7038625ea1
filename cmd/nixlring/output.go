// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// output is the value of --output.
type output struct {
	value   string
	formats []string
}

func (o *output) String() string { return o.value }

// Type is empty, because the usage line lists the formats.
func (o *output) Type() string { return "" }

func (o *output) Set(s string) error {
	if !slices.Contains(o.formats, s) {
		return fmt.Errorf("must be one of %s", strings.Join(o.formats, ", "))
	}
	o.value = s
	return nil
}

// addOutput adds the flag. The first format is the default.
func addOutput(cmd *cobra.Command, formats ...string) *output {
	o := &output{value: formats[0], formats: formats}
	cmd.Flags().VarP(o, "output", "o", "write the result as `FORMAT`: "+strings.Join(formats, ", "))
	complete(cmd, "output", formats)
	return o
}

// complete registers the values of a flag for shell completion.
func complete(cmd *cobra.Command, flag string, values []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag doesn't exist
	}
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// table is a text table. Numeric columns are right-aligned.
type table struct {
	numbers []bool
	rows    [][]string
}

// newTable returns a table with the named columns. The name of a numeric column starts with >.
func newTable(names ...string) *table {
	t := &table{}
	for i, name := range names {
		after, number := strings.CutPrefix(name, ">")
		t.numbers = append(t.numbers, number)
		names[i] = after
	}
	t.add(names...)
	return t
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) error {
	widths := make([]int, len(t.numbers)) // negative to align to the left, as in a format
	for _, row := range t.rows {
		for c, cell := range row {
			widths[c] = max(widths[c], utf8.RuneCountInString(cell))
		}
	}
	for c, number := range t.numbers {
		if !number {
			widths[c] = -widths[c]
		}
	}
	for _, row := range t.rows {
		var line strings.Builder
		for c, cell := range row {
			fmt.Fprintf(&line, "%*s  ", widths[c], cell)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
