/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Prints the FI_VERVE_* variables as the definition list of the manual page, in Markdown. */
#include <ctype.h>
#include <stdio.h>

#include "base/config.h"

int main(void)
{
	char others[VERVE_CONFIG_OTHERS_MAX];
	const struct verve_config_param *param;

	for (size_t i = 0; (param = verve_config_param(i)); i++) {
		printf("`FI_VERVE_");
		for (const char *c = param->name; *c; c++)
			putchar(toupper((unsigned char) *c));
		printf("`\n:   %s ", param->help);
		if (param->automatic)
			printf("Default: auto, %s; or %zu to %zu.\n\n", param->automatic,
			       param->min, param->max);
		else if (param->number)
			printf("Default: %zu%s%s; from %zu to %zu.\n\n", *param->number,
			       param->unit[0] ? " " : "", param->unit, param->min, param->max);
		else if (param->choices)
			printf("Default: %s; or %s.\n\n", param->choices[0],
			       verve_config_others(param, " or ", others));
		else
			printf("Default: %s.\n\n", param->unit);
	}
	return ferror(stdout) || fflush(stdout);
}
