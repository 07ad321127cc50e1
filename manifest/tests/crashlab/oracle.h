/* What must hold after a crash, whatever it left. */
#ifndef CL_ORACLE_H
#define CL_ORACLE_H

#include "engine.h"
#include "model.h"

/* Mistakes that are made with the file, where a change of the log cannot stand for them. */
typedef enum cl_mistake {
    CL_MISTAKE_NONE,
    CL_MISTAKE_INDEX_LATER, /* the crash fell between a commit of records and one of indexes */
    CL_MISTAKE_NO_ATTEMPTS  /* recovery takes back the attempt of a job that killed its process */
} cl_mistake;

typedef struct cl_oracle {
    const cl_model *model;
    cl_mistake mistake;
} cl_oracle;

/* A cl_judge_fn; arg: a cl_oracle. */
bool cl_oracle_judge(const cl_case *c);
/* How the model finds a commit's number. */
extern const cl_reader cl_oracle_reader;

#endif
