// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

import "fmt"

// Variable is a Grafana variable: values of a label, or fixed options.
type Variable struct {
	Name    string
	Label   string // displayed name
	Key     string // the label of the series
	Metric  string // a metric that has the label, or a selector of several
	Within  string // a selector that limits the values
	Single  bool   // whether only one value can be selected
	Options []string
}

// The labels that identify an agent. They are resource attributes and may be missing.
const (
	peerLabels  = "k8s_cluster_name, k8s_namespace_name, service_name"
	agentLabels = peerLabels + ", k8s_pod_name, host_name, nixl_agent_name"
	hostLabels  = "k8s_cluster_name, host_name"
)

// agentVariables returns variables for the labels of agents. The values of each variable depend on
// the variables before it. Selecting all values also matches series without the label.
func agentVariables() []Variable {
	const metric = `{__name__=~"nixl_agent_up|nixl_telemetry_ring_capacity"}` // an agent with stores has no ring
	list := []Variable{
		{Name: "cluster", Label: "Cluster", Key: "k8s_cluster_name", Metric: metric},
		{Name: "namespace", Label: "Namespace", Key: "k8s_namespace_name", Metric: metric},
		{Name: "job", Label: "Job", Key: "service_name", Metric: metric},
		{Name: "pod", Label: "Pod", Key: "k8s_pod_name", Metric: metric},
		{Name: "model", Label: "Model", Key: "gen_ai_request_model", Metric: metric},
		{Name: "host", Label: "Host", Key: "host_name", Metric: metric},
		{Name: "agent", Label: "Agent", Key: "nixl_agent_name", Metric: metric},
	}
	for i := range list {
		list[i].Within = selector(list[:i])
	}
	return list
}

// oneAgentVariables returns variables that select one agent.
func oneAgentVariables() []Variable {
	list := agentVariables()
	host, agent := &list[len(list)-2], &list[len(list)-1]
	host.Single, agent.Single = true, true
	agent.Within = selector(list[:len(list)-1])
	return list
}

// shown returns the variable for the number of series in ranked panels.
func shown(what string) Variable {
	return Variable{Name: "top", Label: what + " shown", Options: []string{"10", "20", "50", "all : 1000000"}}
}

// selector returns the matchers of variables.
func selector(list []Variable) string {
	matchers := ""
	for _, v := range list {
		if v.Options != nil {
			continue
		}
		if matchers != "" {
			matchers += ","
		}
		if v.Single {
			matchers += fmt.Sprintf(`%s="$%s"`, v.Key, v.Name) // Grafana escapes the value as text
		} else {
			matchers += fmt.Sprintf(`%s=~"$%s"`, v.Key, v.Name)
		}
	}
	return matchers
}
