package websocket

import (
	"testing"

	"github.com/chert-http/chert/internal/wsframe"
)

// The codes are those of the frames.
func TestCodes(t *testing.T) {
	t.Parallel()
	for code, frame := range map[Code]wsframe.Code{
		CodeNormal: wsframe.CodeNormal, CodeGoingAway: wsframe.CodeGoingAway, CodeProtocol: wsframe.CodeProtocol,
		CodeUnsupported: wsframe.CodeUnsupported, CodeNoStatus: wsframe.CodeNoStatus, CodeAbnormal: wsframe.CodeAbnormal,
		CodeInvalid: wsframe.CodeInvalid, CodePolicy: wsframe.CodePolicy, CodeTooBig: wsframe.CodeTooBig,
		CodeInternal: wsframe.CodeInternal, CodeRestart: wsframe.CodeRestart, CodeTryLater: wsframe.CodeTryLater,
	} {
		if uint16(code) != uint16(frame) {
			t.Errorf("%d, of frames %d", code, frame)
		}
	}
}
