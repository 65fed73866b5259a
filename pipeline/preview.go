package pipeline

import "evalrun/datasets"

// Request is the request that a call of p begins with when no plugin changes
// anything, with the model's name given. Nothing is asked. An error is a *Failure.
func (c *Caller) Request(p *Program, inputs datasets.Values, shown datasets.Context, model string) (*Request, error) {
	bound, err := p.Bind(inputs)
	if err != nil {
		return nil, err
	}
	s := &shaped{
		program: p, inputs: bound, instruction: p.Instruction(),
		sections: shown.Sections, lm: c.LM, tools: p.toolNames(),
	}
	s.lm.Name = model
	return p.Render(s.rendering(shown, c.facts()))
}
