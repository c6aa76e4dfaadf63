-- one row per visitor and subject of some sections: the number and the digest of the events in the visitor's facts
SELECT
    website_id, visitor_id, toUInt8(subject), subject_id, experiment_id,
    sum(toInt64(sign) * seen)   AS events,
    groupBitXor(digest)         AS digests
FROM {{.Facts}}
WHERE {{.InGeneration}}
    AND section IN {sections:Array(UInt64)}
    AND visitor_id IN {visitors:Array(UInt64)}
GROUP BY website_id, visitor_id, subject, subject_id, experiment_id
HAVING events != 0
