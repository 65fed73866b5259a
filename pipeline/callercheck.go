package pipeline

// Check refuses a program that this caller cannot ask, whatever its inputs are,
// so that nobody learns it from a run in which every row failed. The error is a
// *[Failure].
func (c *Caller) Check(p *Program) error {
	if f := p.unsupported(c.Tools); f != nil {
		return f
	}
	return nil
}
