package pipeline_test

import (
	"strings"
	"testing"
)

// A program that can be used may still not do what its author meant.
func TestWarnings(t *testing.T) {
	const head = "name: route\ninputs: [{name: ticket, shape: {type: string}}]\n"
	for _, c := range []struct{ yaml, want string }{
		{"outputs: [{name: team, shape: {enum: [a, b]}}]\nstate: {demos: [{inputs: {ticket: x}, outputs: {team: a}}]}", ""},
		{"outputs: [{name: team, shape: {enum: [a, b]}}]\nstate: {demos: [{inputs: {tiket: x}, outputs: {team: a}}]}", "has the input tiket, which the program does not have; did you mean ticket?"},
		{"outputs: [{name: team, shape: {enum: [a, b]}}]\nstate: {demos: [{inputs: {}, outputs: {team: a}}]}", "worked example 1 lacks the input ticket"},
		{"outputs: [{name: team, shape: {enum: [a, b]}}]\nstate: {demos: [{inputs: {ticket: x}, outputs: {team: c}}]}", "worked example 1, team: must be one of"},
		{"outputs: [{name: team, shape: {enumm: [a, b]}}]", "team: its shape says enumm, which means nothing; did you mean enum?"},
		{"outputs: [{name: team, shape: {type: string}}]\nstate: {demos: [{inputs: {ticket: x}, outputs: {other: c}}]}", "has none of the program's outputs"},
	} {
		got := strings.Join(program(t, head+c.yaml).Warnings(), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s\nwarnings %q, want %q", c.yaml, got, c.want)
		}
	}
}
