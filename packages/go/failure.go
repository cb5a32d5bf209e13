package chartroom

import (
	"errors"
	"fmt"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"connectrpc.com/connect"

	servicev1 "chartroom.example/client/service/v1"
)

// Failure is a failed call as a program reads it.
type Failure struct {
	// The kind of failure.
	Code connect.Code
	// The reason from the contract's catalogue; unspecified when no server has responded. A reason that is newer than
	// the module is only a number.
	Reason servicev1.ErrorReason
	// Facts about the failure, with the keys that the catalogue names for the reason.
	Metadata map[string]string
	// The first 20 rules that the request breaks.
	Violations []Violation
	// The server's sentence, for a person.
	Message string
	// The id of the call in the server's log; empty when no server has responded.
	RequestID string
}

// Violation is a rule of the contract that a request breaks.
type Violation struct {
	// The path of the field in the request, such as triggers[0].time.time_zone.
	Field string
	// The id of the rule, such as string.uuid.
	Rule string
	// A message for a person.
	Message string
}

// ReasonOf returns the reason of a failed call from the contract's catalogue.
func ReasonOf(err error) servicev1.ErrorReason {
	return FailureOf(err).Reason
}

// FailureOf returns the error of a call as a Failure.
func FailureOf(err error) Failure {
	failure := Failure{Code: connect.CodeOf(err), Message: err.Error()}
	var failed *connect.Error
	if !errors.As(err, &failed) {
		return failure
	}
	failure.Message = failed.Message()
	failure.RequestID = failed.Meta().Get("X-Request-Id")
	for _, each := range failed.Details() {
		value, err := each.Value()
		if err != nil {
			continue
		}
		switch detail := value.(type) {
		case *servicev1.ErrorDetail:
			failure.Reason, failure.Metadata = detail.GetReason(), detail.GetMetadata()
		case *validate.Violations:
			for _, violation := range detail.GetViolations() {
				failure.Violations = append(failure.Violations, Violation{
					Field:   pathOf(violation.GetField()),
					Rule:    violation.GetRuleId(),
					Message: violation.GetMessage(),
				})
			}
		}
	}
	return failure
}

func pathOf(path *validate.FieldPath) string {
	var names []string
	for _, element := range path.GetElements() {
		name := element.GetFieldName()
		switch subscript := element.GetSubscript().(type) {
		case *validate.FieldPathElement_Index:
			name += fmt.Sprintf("[%d]", subscript.Index)
		case *validate.FieldPathElement_BoolKey:
			name += fmt.Sprintf("[%t]", subscript.BoolKey)
		case *validate.FieldPathElement_IntKey:
			name += fmt.Sprintf("[%d]", subscript.IntKey)
		case *validate.FieldPathElement_UintKey:
			name += fmt.Sprintf("[%d]", subscript.UintKey)
		case *validate.FieldPathElement_StringKey:
			name += fmt.Sprintf("[%q]", subscript.StringKey)
		}
		names = append(names, name)
	}
	return strings.Join(names, ".")
}
