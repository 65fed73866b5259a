package journal

import "evalrun/pipeline"

// NotAnswered is the code of the failure of a call that needs what a journal that
// is only read does not know.
const NotAnswered = "not-answered"

func notAnswered(what string) *pipeline.Failure {
	return pipeline.Failf(pipeline.TypeNotRecorded, NotAnswered, "the run's journal has no %s", what)
}
