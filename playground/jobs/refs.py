"""Params that name something of the owner's: another job, whose files they take, or an upload."""

from __future__ import annotations

from collections.abc import Sequence

from compute.core import kinds
from compute.core.errors import InvalidParams, Problem
from compute.core.texts import Text, shorten
from playground.jobs import artifacts, queries, upload_files
from playground.jobs.ids import is_job_id
from playground.jobs.models import Job, Upload

NO_ID = Text(
    '"{value}" is not the id of a run. Give the 20 characters of one, of the kind {allowed}.',
    "“{value}”不是运行的编号。请填一次 {allowed} 的编号（20 个字符）。",
)
NO_RUN = Text('You have no run "{value}".', "你没有编号为“{value}”的运行。")
WRONG_KIND = Text(
    '"{value}" is a run of {kind}; this takes one of {allowed}.',
    "“{value}”是 {kind} 的运行；这里要用 {allowed} 的运行。",
)
NO_FILES_YET = Text("That run has not made any files yet.", "那次运行还没有产生任何文件。")
NEVER_ANY_FILES = Text(
    "That run ended without making any files.", "那次运行没有产生任何文件就结束了。"
)
NO_UPLOAD_ID = Text(
    '"{value}" is not the id of an uploaded file. Upload the file, then give its id (20 '
    "characters).",
    "“{value}”不是上传文件的编号。请先上传文件，再填它的编号（20 个字符）。",
)
NO_UPLOAD = Text(
    'You have no uploaded file "{value}". It may have been deleted.',
    "你没有编号为“{value}”的上传文件，它可能已被删除。",
)
NEITHER = Text(
    'You have neither a run nor an uploaded file "{value}".',
    "你没有编号为“{value}”的运行或上传文件。",
)
WRONG_FORM = Text(
    '"{value}" is a file of {form} ("{name}"); this takes {allowed}.',
    "“{value}”是{form}文件（“{name}”）；这里要用{allowed}。",
)
FORMS = {
    "text": Text("text", "文本"),
    "vectors": Text("word vectors", "词向量"),
}


def check(*, owner_id: int, kind: kinds.Kind, params: kinds.Params) -> None:
    """A param that names something must name what is the owner's, fits, and has files; then the
    kind looks into them. An empty param, or a choice of the kind's own, names nothing. Raises
    InvalidParams."""
    sources, problems = {}, []
    for name, allowed in kind.refs.items():
        value = getattr(params, name)
        if not kinds.names(kind, name, value):
            continue
        found = _source(owner_id, value, allowed)
        if isinstance(found, Text):
            problems.append(Problem(f"/{name}", found))
        else:
            sources[name] = found
    if not problems and kind.check and set(sources) == set(kind.refs):
        problems = kind.check(params, sources)
    if problems:
        raise InvalidParams(problems)


def inputs(job: Job) -> dict[str, str]:
    """`spec["inputs"]`: for each param that names a job, the folder with what that job made; for
    one that names an upload, the file. What has been deleted since is left out: the job says so."""
    found = {}
    for name, allowed in kinds.get(job.kind).refs.items():
        value = job.params.get(name)
        if not is_job_id(value):
            continue
        if _forms(allowed) and Upload.objects.filter(pk=value, owner_id=job.owner_id).exists():
            content = upload_files.content(value)
            found.update({name: str(content)} if content else {})
        elif _kinds(allowed):
            made = [(row.attempt, row.name) for row in queries.artifacts(value)]
            folder = artifacts.input_folder(job.pk, job.attempt, name, value, made)
            found[name] = str(folder)
    return found


def _source(owner_id: int, value: object, allowed: Sequence[str]) -> kinds.Source | Text:
    """What that id names, with its files, or what is wrong with it as a reference."""
    forms, of_kinds = _forms(allowed), _kinds(allowed)
    if not is_job_id(value):
        words = NO_ID if of_kinds else NO_UPLOAD_ID
        return words.format(value=shorten(str(value)), allowed=" / ".join(of_kinds))
    if forms:
        upload = Upload.objects.filter(pk=value, owner_id=owner_id).first()
        if upload is not None:
            return _upload_source(upload, forms)
        if not of_kinds:
            return NO_UPLOAD.format(value=value)
    job = Job.objects.filter(pk=value, owner_id=owner_id).first()
    if job is None:
        return (NEITHER if forms else NO_RUN).format(value=value)
    if job.kind not in of_kinds:
        return WRONG_KIND.format(value=value, kind=job.kind, allowed=" / ".join(of_kinds))
    made = queries.artifacts(job.pk)
    if not made:
        return NEVER_ANY_FILES if job.ended else NO_FILES_YET
    files = {row.name: artifacts.path(job.pk, row.attempt, row.name) for row in made}
    return kinds.Source(files, job.ended)


def _upload_source(upload: Upload, forms: Sequence[str]) -> kinds.Source | Text:
    if upload.form not in forms:
        takes = [FORMS[form] for form in forms]
        allowed = Text(" / ".join(t.en for t in takes), " / ".join(t.zh for t in takes))
        form = FORMS[upload.form]
        return WRONG_FORM.format(value=upload.pk, form=form, name=upload.name, allowed=allowed)
    files = upload_files.kept(upload.pk)
    return kinds.Source(files, True) if files else NO_UPLOAD.format(value=upload.pk)


def _forms(allowed: Sequence[str]) -> list[str]:
    return [a.removeprefix(kinds.UPLOAD) for a in allowed if a.startswith(kinds.UPLOAD)]


def _kinds(allowed: Sequence[str]) -> list[str]:
    return [a for a in allowed if not a.startswith(kinds.UPLOAD)]
