// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"regexp"
	"strings"
)

// workerTitle matches the titles of the processes that have agents in vLLM and SGLang, such as
// VLLM::Worker_DP0_TP3_EP2, sglang::scheduler_TP1 and VLLM::EngineCore. The prefix can be configured. A
// title has those parts whose sizes are above 1.
var workerTitle = regexp.MustCompile(`^[^\s:]+::(?:Worker|EngineCore|scheduler)((?:_[A-Z]+[0-9]+)*)$`)

// rankIn returns the rank in the title of a process, from the contents of /proc/PID/cmdline, or "" if the
// title has another form. A title without parts is that of the only worker, which has rank 0. The rank is the
// number of the part if there is one, and else all parts, such as DP0_TP3: the workers of a pod may have the same
// number in one of them. The rank in expert parallelism follows from the others.
func rankIn(cmdline []byte) string {
	title, _, _ := bytes.Cut(cmdline, []byte{0})
	match := workerTitle.FindSubmatch(bytes.TrimSpace(title))
	if match == nil {
		return ""
	}
	parts := strings.FieldsFunc(string(match[1]), func(r rune) bool { return r == '_' })
	if n := len(parts); n > 1 && strings.HasPrefix(parts[n-1], "EP") {
		parts = parts[:n-1]
	}
	switch len(parts) {
	case 0:
		return "0"
	case 1:
		return strings.TrimLeft(parts[0], "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	default:
		return strings.Join(parts, "_")
	}
}
