/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Failure of the endpoint: how the manager learns of it, and its text. */
#include "xport/failure.h"

#include "conn/cm.h"
#include "xport/xport.h"
#include <rdma/fi_errno.h>

void verve_failure_tell(struct verve_xport *xport, int error)
{
	if (xport->failing || !xport->cm)
		return;
	if (!verve_cm_fail(xport->cm, error))
		xport->failing = error;
}

const char *verve_failure_reason(int error)
{
	if (error == FI_ENODEV)
		return "the device of this endpoint was removed, or failed; close the endpoint";
	return "a queue of this endpoint's device has failed; close the endpoint, open another";
}
