package process

import "time"

// CPUTime is the processor time that the child used in its whole life, in user
// and kernel mode, together with those of its own children that it waited for.
// It may only be called once Done is closed.
func (p *Process) CPUTime() time.Duration {
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}
