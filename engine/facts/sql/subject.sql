website_id = {website_id:Int64}
    AND subject = {subject:String}
    AND subject_id = {subject_id:Int64}
    AND experiment_id = {experiment_id:Int64}