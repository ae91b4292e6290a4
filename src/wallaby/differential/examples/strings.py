"""Text."""

from __future__ import annotations

from typing import Final

#: An object in JSON; its braces are not those of a placeholder.
_OBJECT: Final = (
    "concat('\\u007b\"a\": ', {int}, ', \"b\": [true, \"', {small}, '\"], \"c\": ', {boolean}, '\\u007d')"
)

EXAMPLES: Final = {
    "GetJsonObject": (
        f"get_json_object({_OBJECT}, '$.a')",
        f"get_json_object({_OBJECT}, '$.b[1]')",
        "get_json_object({string}, '$.a')",
    ),
    "JsonToStructs": (
        f"from_json({_OBJECT}, 'a int, c boolean, d string')",
        f"from_json({_OBJECT}, 'a double').a",
    ),
    "Mask": ("mask({string})", "mask({digits}, 'A', 'b', '#', '-')", "mask({digits}, NULL)"),
    "ParseUrlEvaluator#evaluate": (
        "parse_url(concat('http://spark.apache.org/p', {small}, '?q=', {int}, '&x=1'), 'QUERY', 'q')",
        "try_parse_url({string}, 'HOST')",
    ),
    "FormatString": (
        "format_string('%s-%d%% %s', {string}, {whole}, {boolean})",
        "printf('%2$s %1$s%n', {int}, {string})",
    ),
    "StartsWith": ("startswith({string}, {string})", "{string} like 'a%'"),
    "EndsWith": ("endswith({string}, {string})", "{string} like '%m'"),
    "Contains": ("contains({string}, {string})", "{string} like '%ß%'"),
    "Like": (
        "{string} like '_p%m'",
        "{string} like '%a_b%'",
        "{string} like 'a/%b' escape '/'",
        "{string} not like '_'",
        "{string} like {string}",
        "{string} ilike concat(left({string}, 1), '%')",
    ),
    "Substring": (
        "substring({string}, {small}, {small})",
        "substr({string}, {small})",
        "substring({string}, 0, 2)",
    ),
    "Upper": ("upper({string})",),
    "Lower": ("lower({string})",),
    "Concat": ("concat({string}, {string}, 'x')", "{string} || {number}", "{binary} || {binary}"),
    "ConcatWs": ("concat_ws({string}, {string}, {digits})", "concat_ws('-', {string}, null, {string})"),
    "Length": ("length({string})", "char_length({digits})", "length({binary})"),
    "OctetLength": ("octet_length({string})", "octet_length({binary})"),
    "BitLength": ("bit_length({string})", "bit_length({binary})"),
    "StringTrim": ("trim({string})", "trim(both 'a ß' from {string})", "btrim({string}, {string})"),
    "StringTrimLeft": ("ltrim({string})", "ltrim('x😀a', {string})"),
    "StringTrimRight": ("rtrim({string})", "rtrim({string}, {string})"),
    "StringLPad": ("lpad({string}, {small}, {string})", "lpad({string}, 9)"),
    "StringRPad": ("rpad({string}, {small}, {string})", "rpad({string}, 9, 'é😀')"),
    "StringInstr": ("instr({string}, {string})", "instr({string}, 'a')"),
    "StringLocate": (
        "locate('a', {string}, {small})",
        "locate({string}, {string})",
        "position('b' in {string})",
    ),
    "SubstringIndex": ("substring_index({string}, 'a', {small})", "substring_index({string}, {string}, -1)"),
    "SplitPart": ("split_part({string}, 'X', {small})", "split_part({string}, {string}, 1)"),
    "StringReplace": ("replace({string}, 'a', {string})", "replace({string}, {string})"),
    "StringTranslate": ("translate({string}, 'abß😀', 'xy')", "translate({string}, {string}, {string})"),
    "Reverse": ("reverse({string})",),
    "StringRepeat": ("repeat({string}, {small})",),
    "StringSpace": ("space({small})",),
    "InitCap": ("initcap({string})",),
    "Ascii": ("ascii({string})",),
    "Chr": ("chr({int})", "char({bigint})"),
    "Overlay": (
        "overlay({string} placing {string} from {small})",
        "overlay({string} placing 'x' from 2 for {small})",
    ),
    "FindInSet": ("find_in_set({string}, 'a,b,,abc')", "find_in_set('a', {string})"),
    "Levenshtein": ("levenshtein({string}, {string})",),
    "SoundEx": ("soundex({string})",),
    "Elt": ("elt({small}, {string}, {string})", "elt(2, {string}, {string})"),
    "LikeAll": ("{string} like all ('%a%', '%b_')",),
    "LikeAny": ("{string} like any ('a%', '_b%', '%😀%')",),
    "NotLikeAll": ("{string} not like all ('%a_', '_b%')",),
    "NotLikeAny": ("{string} not like any ('%a_', '_b%')",),
    "Md5": ("md5({binary})",),
    "Sha1": ("sha1({binary})",),
    "Sha2": ("sha2({binary}, 256)", "sha2({binary}, 512)", "sha2({binary}, {small})"),
    "Crc32": ("crc32({binary})",),
    "Murmur3Hash": ("hash({any})", "hash({any}, {string}, {any})"),
    "XxHash64": ("xxhash64({any})", "xxhash64({any}, {string}, {any})"),
    "Hex": ("hex({string})", "hex({binary})", "hex({whole})"),
    "Unhex": ("unhex({string})", "unhex({digits})", "to_binary({digits}, 'hex')"),
    "UnBase64": ("unbase64(base64({binary}))", "unbase64(concat(base64({binary}), ' '))"),
    "StaticInvoke": ("base64({binary})",),
    "Base64#encode": ("base64({binary})", "base64(concat({binary}, {binary}, {binary}, {binary}))"),
    "Encode#encode": ("encode({string}, 'UTF-8')",),
    "StringDecode#decode": ("decode(encode({string}, 'utf-8'), 'utf-8')",),
    "UrlCodec#encode": ("url_encode({string})",),
    "UrlCodec#decode": ("url_decode(url_encode({string}))", "try_url_decode({string})"),
    "ExpressionImplUtils#isLuhnNumber": ("luhn_check({digits})", "luhn_check({string})"),
    "RLike": (
        "{string} rlike '^a.*m?$'",
        "{string} rlike '(?i)[a-c]x|ß|😀'",
        "regexp_like({digits}, '^[+-]?\\\\d+(\\\\.\\\\d*)?$')",
        "{string} rlike 'a(?=b)'",
    ),
    "RegExpExtract": (
        "regexp_extract({moment}, '(\\\\d+)-(\\\\d+)', 2)",
        "regexp_extract({string}, '(a|ab)(b?)', 1)",
        "regexp_substr({string}, '[a-cX]+')",
    ),
    "RegExpExtractAll": ("regexp_extract_all({string}, '[a-z]', 0)", "regexp_count({string}, 'a|X')"),
    "RegExpInStr": ("regexp_instr({string}, '[b😀]')",),
    "RegExpReplace": (
        "regexp_replace({string}, '[^a-z]', '')",
        "regexp_replace({string}, '(a)(.)', '$2<$1>')",
        "regexp_replace({string}, 'x+$', '-')",
    ),
}
